import { type Dropped, dropUnknown, readArray, readObject, readOptional, readString } from "../request/fields.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";

const THINKING_FIELDS = new Set(["type", "thinking", "signature"]);
const REDACTED_FIELDS = new Set(["type", "data"]);

/**
 * Converts thinking of earlier turns, for servers of Chat Completions that need it within a tool loop. The text becomes
 * `reasoning_content`. Signed or redacted thinking becomes `reasoning_details`, in its order, so that a Messages provider
 * behind such a server can check it.
 */
export function thinkingToChat(blocks: readonly JsonObject[], paths: readonly string[], dropped: Dropped): JsonObject {
  let text = "";
  const details = blocks.flatMap((block, index): JsonObject[] => {
    const path = paths[index] ?? "messages";
    if (block.type === "redacted_thinking") {
      dropUnknown(block, REDACTED_FIELDS, "messages.content.", dropped);
      return [{ type: "reasoning.encrypted", data: readString(block.data, `${path}.data`) }];
    }
    dropUnknown(block, THINKING_FIELDS, "messages.content.", dropped);
    const thinking = readString(block.thinking, `${path}.thinking`);
    text += thinking;
    const signature = readOptional(block.signature, `${path}.signature`, readString);
    return signature ? [{ type: "reasoning.text", text: thinking, signature }] : [];
  });
  const fields: JsonObjectDraft = {};
  if (text !== "") fields.reasoning_content = text;
  if (details.length > 0) fields.reasoning_details = details;
  return fields;
}

/**
 * Converts the thinking that this proxy gave to a caller of Chat Completions back to the blocks that the Messages provider signed. A stream
 * delivers text and signature separately. They are joined again if there is one of each. Reasoning without a signature does not come from
 * a Messages provider, which would refuse it, so it is dropped. An empty signature counts, because some providers of Messages sign
 * nothing.
 */
export function thinkingToMessages(message: JsonObject, path: string, dropped: Dropped): readonly JsonObject[] {
  const content = readOptional(message.reasoning_content, `${path}.reasoning_content`, readString) ?? "";
  const details = (readOptional(message.reasoning_details, `${path}.reasoning_details`, readArray) ?? []).map((detail, index) =>
    readDetail(detail, `${path}.reasoning_details.${index}`),
  );
  const signed = details.filter((detail) => detail.signature !== undefined);
  const textless = signed.filter((detail) => detail.text === undefined);
  const blocks = details.flatMap(({ data, text, signature }): JsonObject[] => {
    if (data !== undefined) return [{ type: "redacted_thinking", data }];
    return signature === undefined ? [] : [{ type: "thinking", thinking: text ?? content, signature }];
  });
  if (blocks.length < details.length) dropped.add("messages.reasoning_details");
  if (content !== "" && signed.length === 0) dropped.add("messages.reasoning_content");
  // It is unknown which part of the text belongs to which signature. Providers refuse altered thinking, so it is left out.
  if (textless.length === 0 || signed.length === 1) return blocks;
  dropped.add("messages.reasoning_details");
  return [];
}

interface ReasoningDetail {
  readonly data?: string | undefined;
  readonly text?: string | undefined;
  readonly signature?: string | undefined;
}

function readDetail(value: Json, path: string): ReasoningDetail {
  const detail = readObject(value, path);
  if (detail.type === "reasoning.encrypted") return { data: readString(detail.data, `${path}.data`) };
  if (detail.type !== "reasoning.text") return {};
  return {
    text: readOptional(detail.text, `${path}.text`, readString),
    signature: readOptional(detail.signature, `${path}.signature`, readString),
  };
}
