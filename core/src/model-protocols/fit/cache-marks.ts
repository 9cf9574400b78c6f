import { isRecord } from "../../kit/json-object.ts";
import type { JsonRecord } from "./fitted-request.ts";

/** "A maximum of 4 blocks with cache_control may be provided": tghamm/Anthropic.SDK#50, griffinmartin/opencode-claude-auth#121. */
const MOST = 4;

/**
 * The request with at most four cache marks: the first one, which marks what rarely changes, and the last ones, which mark the longest
 * prefixes. Reports whether marks were left out.
 */
export function fitCacheMarks(fitted: Record<string, unknown>): boolean {
  const spare = fitted["cache_control"] === undefined ? MOST : MOST - 1;
  let found = 0;
  eachMark(fitted, () => (found += 1) > 0);
  if (found <= spare) return false;
  let seen = 0;
  Object.assign(
    fitted,
    eachMark(fitted, () => (seen += 1) === 1 || seen > found - spare + 1),
  );
  return true;
}

/** Asks `keeps` for each mark, in the order of the prefix. Gives the lists of the request without the other marks. */
function eachMark(body: JsonRecord, keeps: () => boolean): JsonRecord {
  const through = (list: unknown, depth: number): unknown => {
    if (!Array.isArray(list) || depth === 0) return list;
    return list.map((holder: unknown) => {
      if (!isRecord(holder)) return holder;
      const content = through(holder["content"], depth - 1);
      const isKept = holder["cache_control"] == null || keeps();
      const { cache_control: _mark, ...unmarked } = holder;
      const rest = isKept ? holder : unmarked;
      return content === undefined ? rest : { ...rest, content };
    });
  };
  // A result is in the content of a message, and has content of its own.
  return Object.fromEntries(
    ["tools", "system", "messages"].flatMap((field) => (body[field] === undefined ? [] : [[field, through(body[field], 3)]])),
  );
}
