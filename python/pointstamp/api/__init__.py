"""The classes that programs call: scopes, streams, collections and inputs. Methods append nodes."""
