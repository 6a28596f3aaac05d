"""The basis of all rules: plug-in contract, host views, options and the sandbox."""
