"""What an ad account consists of: sell pages, campaigns, ad sets, ads."""
