"""What rules are made of: the plug-in contract, host views, options and the sandbox."""
