import { createConfig, lintFromString } from "@redocly/openapi-core";

/** All that a linter finds wrong with an OpenAPI or AsyncAPI document, a line each: every rule of its strict set but these. */
export async function lintDocument(document: object): Promise<string[]> {
  const config = await createConfig({
    extends: ["recommended-strict"],
    rules: {
      // Probes and the console's page have no parameters and no callers, so no client error can occur.
      "operation-4xx-response": "off",
    },
    async3Rules: {
      // A caller of a realtime channel identifies itself in the message `connect`: that is not a credential of the transport.
      "security-defined": "off",
    },
  });
  const problems = await lintFromString({ source: JSON.stringify(document), config });
  return problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer ?? ""}: ${message}`);
}
