"""How well predicted click rates agree with clicks."""
