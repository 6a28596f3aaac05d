"""What moves instances: steps over what is free, what runs where, and the choice."""
