// Computes 50 rows of the mock provider from its description alone (issue 7), in another language than the product.
// node tests/sync/golden/mock_rows.mjs > tests/sync/golden/mock_rows.json

import { createHash } from "node:crypto";

const sellers = ["019a7f00-1111-7000-8000-00000000000a", "019a7f00-2222-7abc-9def-0123456789ab"];
const budgets = [
  { level: "CAMPAIGN", budget: "2500.00", budgetType: "DAILY", adsInSet: 1 },
  { level: "CAMPAIGN", budget: "2500.00", budgetType: "LIFETIME", adsInSet: 1 },
  { level: "ADSET", budget: "99.99", budgetType: "DAILY", adsInSet: 3 },
  { level: "AD", budget: "1000.00", budgetType: "DAILY", adsInSet: 3 },
  { level: "AD", budget: "12345.67", budgetType: "LIFETIME", adsInSet: 7 },
  { level: "CAMPAIGN", budget: "0.00", budgetType: "DAILY", adsInSet: 1 },
  { level: "CAMPAIGN", budget: "0.50", budgetType: "DAILY", adsInSet: 1 },
];
const days = ["2026-02-19", "2026-02-28", "2026-03-01", "2026-12-31", "2024-02-29"];

function mulberry32(seed) {
  let a = seed | 0;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const halfUp = (x) => Math.floor(x + 0.5);

// `of / to` to 4 places, half up, of whole numbers: no binary fraction is involved.
function ratio(of, to) {
  if (to === 0n) return "0.0000";
  const scaled = (of * 10000n * 2n + to) / (to * 2n);
  return `${scaled / 10000n}.${String(scaled % 10000n).padStart(4, "0")}`;
}

const money = (cents) => `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, "0")}`;

function row(seller, entity, day, { level, budget, budgetType, adsInSet }) {
  const seed = createHash("sha256").update(`${seller}:${entity}:${day}`).digest().readUInt32BE(0);
  const draw = mulberry32(seed);
  let base = Number(budget);
  if (budgetType === "LIFETIME") base = base / 30;
  if (level === "AD") base = base / adsInSet;
  const noise = () => 0.9 + draw() * 0.2;
  const spend = halfUp(base * (0.85 + draw() * 0.3) * 100);
  const impressions = halfUp((spend / 100 / 8.5) * 1000 * noise());
  const linkClicks = halfUp(impressions * 0.02 * noise());
  const contentViews = halfUp(linkClicks * 0.7 * noise());
  const addToCart = halfUp(contentViews * 0.12 * noise());
  const checkoutInitiated = halfUp(addToCart * 0.5 * noise());
  const purchases = halfUp(checkoutInitiated * 0.4 * noise());
  const orderValue = 35 + draw() * 115;
  const purchaseValue = halfUp(purchases * orderValue * 100);
  const [s, i, c, p, v] = [spend, impressions, linkClicks, purchases, purchaseValue].map(BigInt);
  return {
    sellerId: seller, entityId: entity, date: day, level, budget, budgetType, adsInSet, seed,
    spend: money(spend), impressions, linkClicks, contentViews, addToCart, checkoutInitiated, purchases,
    purchaseValue: money(purchaseValue),
    cpm: ratio(s * 1000n, i * 100n), ctr: ratio(c, i), cpc: ratio(s, c * 100n),
    costPerPurchase: ratio(s, p * 100n), roas: ratio(v, s),
  };
}

const rows = [];
for (let n = 0; n < 50; n++) {
  const entity = `019a7f${String(n).padStart(2, "0")}-abcd-7000-9000-${String(n * 7919).padStart(12, "0")}`;
  rows.push(row(sellers[n % 2], entity, days[n % 5], budgets[n % 7]));
}
console.log("[\n" + rows.map((one) => "  " + JSON.stringify(one)).join(",\n") + "\n]");
