import { agentFileSchema } from "@portico/adapters/agents/agent-file";
import { SchemaBook } from "@portico/core/schema-book";

/** The published JSON Schema of `agent.json`. Unknown keys are faults for an editor, although the service only tells them. */
export function publishedAgentSchema(): string {
  const book = new SchemaBook("#/$defs/");
  const schema = book.of("agent", agentFileSchema);
  const whole = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Portico agent.json",
    ...schema,
    additionalProperties: false,
    ...(Object.keys(book.shared).length > 0 && { $defs: book.shared }),
  };
  return `${JSON.stringify(whole, null, 2)}\n`;
}
