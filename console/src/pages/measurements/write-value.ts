import type { ChartOf } from "./lines.ts";

const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const shortMoney = new Intl.NumberFormat(undefined, { notation: "compact", maximumSignificantDigits: 2 });
const whole = new Intl.NumberFormat();
const digits = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const money = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 4 });

/** A value of a chart as text. `isShort`: beside an axis. */
export function writeValue(value: number | null, unit: ChartOf["unit"], isShort = false): string {
  if (value === null) return "–";
  if (unit === "duration") return value >= 1000 ? `${digits.format(value / 1000)} s` : `${digits.format(value)} ms`;
  if (unit === "money") return isShort ? shortMoney.format(value) : money.format(value);
  return isShort ? short.format(value) : whole.format(value);
}

/** The time of a step, in a time zone or else in the reader's. */
export function timeWriter(step: "minute" | "hour" | "day", timeZone: string | undefined): (at: Date) => string {
  const format =
    step === "day"
      ? new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone })
      : new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false, timeZone });
  return (at) => format.format(at);
}
