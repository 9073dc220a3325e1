extern "C" int native_toy_answer() { return 42; }
