import { isRecord } from "../../kit/json-object.ts";

const CHOICES = ["anyOf", "oneOf", "allOf"] as const;

/**
 * Vendors refuse a whole request if the schema of a tool has a choice at its top (makenotion/notion-mcp-server#340). The properties of all
 * branches stay, as the model reads them. What is required stays if each branch requires it. The server of the tool checks its arguments.
 */
export function withoutTopLevelChoice(schema: unknown): unknown {
  if (!isRecord(schema) || !CHOICES.some((key) => key in schema)) return schema;
  const { anyOf, oneOf, allOf, ...rest } = schema;
  const properties: Record<string, unknown> = Object.create(null);
  const required = new Set(textsOf(rest["required"]));
  for (const branches of [anyOf, oneOf, allOf]) {
    const objects = Array.isArray(branches) ? branches.filter(isRecord) : [];
    for (const { properties: own } of objects) if (isRecord(own)) Object.assign(properties, own);
    const lists = objects.map((branch) => textsOf(branch["required"]));
    const shared =
      branches === allOf ? lists.flat() : (lists[0] ?? []).filter((name) => lists.every((list) => list.includes(name)));
    for (const name of shared) required.add(name);
  }
  Object.assign(properties, isRecord(rest["properties"]) ? rest["properties"] : {});
  return { ...rest, type: "object", properties: { ...properties }, ...(required.size > 0 && { required: [...required] }) };
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}
