"""What Roost promises, checked."""
