/** Whether the day with which an ISO 8601 date or time begins exists. JavaScript reads 30 February as 2 March. */
export function isExistingDay(text: string): boolean {
  const day = text.slice(0, 10);
  const time = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(day) : Number.NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(day);
}
