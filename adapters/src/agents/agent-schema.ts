import { SchemaBook } from "@portico/core/schema-book";
import { agentFileSchema } from "./agent-file.ts";

let made: Readonly<Record<string, unknown>> | undefined;

/** The JSON Schema of `agent.json`. Unknown keys are faults for an editor, although the service only tells them. */
export function agentSchema(): Readonly<Record<string, unknown>> {
  return (made ??= makeSchema());
}

function makeSchema(): Readonly<Record<string, unknown>> {
  const book = new SchemaBook("#/$defs/");
  const schema = book.of("agent", agentFileSchema);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Portico agent.json",
    ...schema,
    additionalProperties: false,
    ...(Object.keys(book.shared).length > 0 && { $defs: book.shared }),
  };
}
