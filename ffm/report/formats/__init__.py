"""The views in files for others: pages, pictures, traces, SARIF, JUnit, annotations, whole documents."""
