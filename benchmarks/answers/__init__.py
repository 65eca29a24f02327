"""The public harness for answers: four sets, any model or none, one report (`python benchmarks/answers --help`)."""
