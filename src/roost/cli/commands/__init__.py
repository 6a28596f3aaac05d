"""The commands, one module per noun, imported on use."""
