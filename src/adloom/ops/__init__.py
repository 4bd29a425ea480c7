"""Running an installation: checks, attention, jobs, system status, doctor."""
