"""What programs call: scopes, streams, collections, and the inputs that feed them. Methods append nodes."""
