WHERE = "native language"
