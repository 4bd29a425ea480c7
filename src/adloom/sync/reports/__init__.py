"""Reports: what campaigns, ad sets, ads and sell pages cost and brought, over some days."""
