import { isRecord } from "../../kit/json-object.ts";
import { writeExactly } from "../json.ts";
import type { JsonRecord } from "./fitted-request.ts";

/** A Chat Completions request whose instructions describe the answer, in place of `response_format`. Undefined if it has no schema. */
export function withAnswerInWords(request: JsonRecord): JsonRecord | undefined {
  const { response_format: format, ...body } = request;
  const named = isRecord(format) ? format["json_schema"] : undefined;
  if (!isRecord(named)) return undefined;
  const told = answerInstruction(named["schema"]);
  const [first, ...others]: readonly unknown[] = Array.isArray(body["messages"]) ? body["messages"] : [];
  if (!isRecord(first) || first["role"] !== "system")
    return { ...body, messages: [{ role: "system", content: told }, ...(first === undefined ? [] : [first]), ...others] };
  const { content } = first;
  const together = Array.isArray(content)
    ? [...(content as readonly unknown[]), { type: "text", text: told }]
    : `${String(content)}\n\n${told}`;
  return { ...body, messages: [{ ...first, content: together }, ...others] };
}

/** Asks for an answer that fits a schema. */
export function answerInstruction(schema: unknown): string {
  const form = isRecord(schema) ? writeExactly(schema) : "{}";
  return `Answer with one JSON object that fits this JSON Schema, and nothing else: no text before or after it, and no code fence around it.\n${form}`;
}
