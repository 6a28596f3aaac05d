"""The commands, one file a noun, loaded on use."""
