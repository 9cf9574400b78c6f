import { loadOracle } from "./oracle.ts";

/** What we use of `@redocly/openapi-core`. */
interface Redocly {
  createConfig(rules: object): Promise<object>;
  lintFromString(options: { readonly source: string; readonly config: object }): Promise<readonly Problem[]>;
}

interface Problem {
  readonly ruleId: string;
  readonly message: string;
  readonly location: readonly { readonly pointer?: string }[];
}

/** All that a linter finds wrong with an OpenAPI or AsyncAPI document, a line each: every rule of its strict set but these. */
export async function lintDocument(document: object): Promise<string[]> {
  const { createConfig, lintFromString } = await loadOracle<Redocly>("@redocly/openapi-core");
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
