const money = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const fraction = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });

/** A cost as text: `7.60 EUR`, `0.0042 EUR`. */
export function writeCost(cost: number, currency: string | undefined): string {
  const amount = cost !== 0 && Math.abs(cost) < 0.1 ? fraction.format(cost) : money.format(cost);
  return currency === undefined ? amount : `${amount} ${currency}`;
}
