"""What a publisher's page gets from us: the script that fills its placements, and ways without one."""
