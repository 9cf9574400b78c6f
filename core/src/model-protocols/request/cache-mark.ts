import { type Dropped, dropUnknown, isAbsent, readObject, readOptional, readString } from "./fields.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";

const MARK_FIELDS = new Set(["type", "ttl"]);

/**
 * Chat Completions has no official cache marks, but callers of gateways set `cache_control` where Messages accepts it. Returns `marked`
 * without its mark, for readers that do not know marks, and the mark.
 */
export function takeCacheMark(
  marked: JsonObject,
  path: string,
  dropped: Dropped,
): readonly [rest: JsonObject, mark?: JsonObject] {
  if (isAbsent(marked.cache_control)) return [marked];
  const { cache_control, ...rest } = marked;
  return [rest, readCacheMark(cache_control, `${path}.cache_control`, dropped)];
}

/** @throws ConversionRefused if the mark is malformed. The provider checks its types and times. */
export function readCacheMark(value: Json | undefined, path: string, dropped: Dropped): JsonObject {
  const given = readObject(value, path);
  dropUnknown(given, MARK_FIELDS, "cache_control.", dropped);
  const mark: JsonObjectDraft = { type: readString(given.type, `${path}.type`) };
  const ttl = readOptional(given.ttl, `${path}.ttl`, readString);
  if (ttl !== undefined) mark.ttl = ttl;
  return mark;
}

export function withCacheMark(block: JsonObject, mark: JsonObject | undefined): JsonObject {
  return mark ? { ...block, cache_control: mark } : block;
}

/** A mark on a message is moved to its last block. A mark of that block has priority. Messages accepts no mark on thinking. */
export function markLast(blocks: readonly JsonObject[], mark: JsonObject | undefined, dropped: Dropped): readonly JsonObject[] {
  if (!mark) return blocks;
  const last = blocks.at(-1);
  if (last && !isAbsent(last.cache_control)) return blocks;
  if (last && last.type !== "thinking" && last.type !== "redacted_thinking")
    return [...blocks.slice(0, -1), withCacheMark(last, mark)];
  dropped.add("cache_control");
  return blocks;
}
