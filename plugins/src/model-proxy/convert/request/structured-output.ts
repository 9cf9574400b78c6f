import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";
import { textBlock } from "../turns/text-parts.ts";
import { dropUnknown, isAbsent, quoteName, readBoolean, readObject, readOptional, readString } from "./read-field.ts";

/** Messages has no JSON mode without a schema, so an instruction asks the model for JSON. */
const JSON_OBJECT_INSTRUCTION =
  "Answer with one valid JSON object and nothing else: no text before or after it, and no code fence around it.";

/** Chat Completions requires a name for a schema. Messages has no such name. */
const SCHEMA_NAME = "response";
const FORMAT_FIELDS = new Set(["type", "schema"]);
const RESPONSE_FORMAT_FIELDS = new Set(["type", "json_schema"]);
const JSON_SCHEMA_FIELDS = new Set(["schema", "strict"]);

/**
 * `output_config.format`, or the older top-level `output_format`. Messages always follows the schema, so `strict` is set.
 */
export function structuredOutputToChat(body: JsonObject, chat: JsonObjectDraft, dropped: Dropped): void {
  const config = readOptional(body.output_config, "output_config", readObject);
  const path = isAbsent(config?.format) ? "output_format" : "output_config.format";
  const format = readOptional(config?.format ?? body.output_format, path, readObject);
  if (!format) return;
  if (format.type !== "json_schema")
    throw new ConversionRefused(`${path}.type`, `${quoteName(format.type)} has no counterpart here`);
  dropUnknown(format, FORMAT_FIELDS, `${path}.`, dropped);
  const schema = readObject(format.schema, `${path}.schema`);
  chat.response_format = { type: "json_schema", json_schema: { name: SCHEMA_NAME, schema, strict: true } };
}

/**
 * A `json_schema` becomes `output_config.format`. Its name and description are dropped. A schema without `strict` becomes strict, too.
 * `json_object` becomes an instruction at the end of `system`, so that a cached prefix stays valid.
 */
export function structuredOutputToMessages(
  body: JsonObject,
  messages: JsonObjectDraft,
  outputConfig: JsonObjectDraft,
  dropped: Dropped,
): void {
  const format = readOptional(body.response_format, "response_format", readObject);
  if (!format) return;
  dropUnknown(format, RESPONSE_FORMAT_FIELDS, "response_format.", dropped);
  const type = readString(format.type, "response_format.type");
  if (type === "text") return;
  if (type === "json_object") {
    messages.system = [...systemBlocks(messages.system), textBlock(JSON_OBJECT_INSTRUCTION)];
    return;
  }
  if (type !== "json_schema") {
    throw new ConversionRefused("response_format", `this provider has no ${quoteName(type)}; give a "json_schema"`);
  }
  const named = readObject(format.json_schema, "response_format.json_schema");
  readOptional(named.strict, "response_format.json_schema.strict", readBoolean);
  dropUnknown(named, JSON_SCHEMA_FIELDS, "response_format.json_schema.", dropped);
  const schema = readObject(named.schema, "response_format.json_schema.schema");
  outputConfig.format = { type: "json_schema", schema };
}

/** The converted `system`: absent, a string, or blocks. */
function systemBlocks(system: Json | undefined): readonly Json[] {
  if (system === undefined) return [];
  return Array.isArray(system) ? (system as readonly Json[]) : [textBlock(String(system))];
}
