"""What threads prove: who started and joined whom, who waited for whom, which are the driver's own."""
