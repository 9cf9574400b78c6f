import { record } from "@portico/core";
import * as v from "valibot";
import { PACKAGE_NAME } from "./ai-sdk/load-models.ts";

/** The settings of providers of the protocol `ai-sdk`. */
export const aiSdkSettings = {
  package: v.optional(
    v.pipe(
      v.string(),
      v.regex(PACKAGE_NAME, "the name of a package, such as @ai-sdk/groq"),
      v.description("`ai-sdk`: the provider package of the AI SDK that is installed in the working folder."),
    ),
  ),
  create: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[A-Za-z_$][\w$]{0,99}$/, "the name of a function"),
      v.description("`ai-sdk`: the function of the package that creates the provider. Default: its only export `createName`."),
    ),
  ),
  options: v.optional(
    v.pipe(
      record(v.string(), v.any()),
      v.description(
        "`ai-sdk`: what that function gets, without secrets. `credential` is its `apiKey`; packages read further secrets from their environment variables.",
      ),
    ),
  ),
  providerOptions: v.optional(
    v.pipe(
      record(v.string(), v.pipe(record(v.string(), v.any()), v.description("The options of one provider of the SDK."))),
      v.description("`ai-sdk`: options of each call, by the provider's name in the SDK."),
    ),
  ),
};

type OwnKey = keyof typeof aiSdkSettings;
type OtherKey = "models" | "retry" | "concurrency" | "dialect" | "keys" | "headers" | "credential";

/** What the check of a provider reads. */
interface CheckedProvider extends Partial<Readonly<Record<OwnKey | OtherKey, unknown>>> {
  readonly protocol: string;
}

/** A key that does not fit its provider, and what was expected in its place. */
export interface AiSdkFault {
  readonly key: OwnKey | OtherKey;
  readonly expected: string;
}

/** The keys of a provider that its protocol does not have, or that are missing. */
export function aiSdkFaults(provider: CheckedProvider): readonly AiSdkFault[] {
  if (provider.protocol !== "ai-sdk") {
    const extra = (Object.keys(aiSdkSettings) as OwnKey[]).filter((key) => provider[key] !== undefined);
    return extra.map((key) => ({ key, expected: 'nothing: only providers of the protocol "ai-sdk" have it' }));
  }
  const faults: AiSdkFault[] = [];
  if (provider.package === undefined) faults.push({ key: "package", expected: "the name of an installed package" });
  if (Array.isArray(provider.models) && provider.models.some((model) => typeof model !== "string"))
    faults.push({ key: "models", expected: "names: models of packages of the AI SDK have no settings" });
  for (const key of ["retry", "concurrency", "dialect", "keys"] as const)
    if (provider[key] !== undefined) faults.push({ key, expected: 'nothing: providers of the protocol "ai-sdk" do not have it' });
  if (Object.keys(provider.headers ?? {}).length > 0)
    faults.push({ key: "headers", expected: "nothing: the package takes headers in `options`" });
  const { credential } = provider;
  if (typeof credential === "object" && credential !== null && "command" in credential)
    faults.push({ key: "credential", expected: 'a key: providers of the protocol "ai-sdk" take no command' });
  return faults;
}
