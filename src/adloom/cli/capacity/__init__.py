"""`adloom capacity`: the capacity model as text."""
