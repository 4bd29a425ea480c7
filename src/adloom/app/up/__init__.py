"""`adloom up`: the whole product on one machine."""
