"""Reports: cost and results of campaigns, ad sets, ads and sell pages over a range of days."""
