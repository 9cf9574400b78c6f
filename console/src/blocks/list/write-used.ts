/** What models used, as services tell it. */
export interface Used {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly cost?: number | undefined;
  readonly currency?: string | undefined;
}

const whole = new Intl.NumberFormat();
const money = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 4 });

/** All tokens, and both parts of them. Undefined if none were reported. */
export function writeTokens({ inputTokens, outputTokens }: Used = {}):
  | { readonly all: string; readonly parts: string }
  | undefined {
  if (inputTokens === undefined && outputTokens === undefined) return undefined;
  const [read, written] = [inputTokens ?? 0, outputTokens ?? 0];
  return { all: whole.format(read + written), parts: `${whole.format(read)} in, ${whole.format(written)} out` };
}

/** Money with its currency, which may be any text. Empty if it is not known. */
export function writeCost({ cost, currency = "" }: Used = {}): string {
  return cost === undefined ? "" : `${money.format(cost)} ${currency}`.trim();
}
