"""Authentication and authorization, and the rules of browsers.

``authentication``: trusted headers, and tokens with their hashes.
``keystone_auth``: authentication by Keystone.
``token_file``: the file of tokens of a running server.
``token_edits``: adds and removes tokens of a file.
``private_file``: replaces files with tokens in one step.
``browser_session``: sealed cookies of browser sessions.
``session_cookie``: names of these cookies, and the check of requests with a cookie.
``policy``: policies of the Placement API, with overrides.
``policy_rules``: the language of policy rules.
``allowed_hosts``: host names of a server without authentication.
``cors``: cross-origin requests of browsers.
"""
