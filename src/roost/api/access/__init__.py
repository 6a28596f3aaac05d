"""Authentication and authorization: tokens, Keystone, policies, ownership."""
