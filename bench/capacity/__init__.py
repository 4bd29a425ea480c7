"""`adloom bench capacity`: measures what `adloom capacity` computes with."""
