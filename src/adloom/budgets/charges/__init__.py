"""The projection that confirms charges from counted events."""
