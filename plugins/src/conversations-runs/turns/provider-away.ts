/**
 * Whether a turn failed because its model's provider is away: no connection, no answer in time, or a refusal that passes, such as 429, 500
 * and an overload. Errors are compared by name, because an engine may bring its own copy of a package.
 */
export function isProviderAway(error: unknown): boolean {
  for (let cause = error, depth = 0; cause instanceof Error && depth < MOST_CAUSES; cause = cause.cause, depth++) {
    if (AWAY.has(cause.name)) return true;
    if (cause.name === "ModelRefused") return (cause as { readonly isPassing?: unknown }).isPassing === true;
  }
  return false;
}

const AWAY: ReadonlySet<string> = new Set(["ModelUnreachable", "ModelTimeout", "ModelOverloaded"]);
const MOST_CAUSES = 10;
