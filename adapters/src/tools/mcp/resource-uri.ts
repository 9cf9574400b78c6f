import { UriTemplate } from "@modelcontextprotocol/client";
import { ports } from "@portico/core";

/** The URI that a template makes with these values. Throws ToolArgumentsInvalid for missing, unknown and unsuitable values. */
export function resourceUri(template: string, values: Readonly<Record<string, string>>): string {
  const parsed = parse(template);
  const names = parsed?.variableNames ?? [];
  if (Object.keys(values).some((name) => !names.includes(name)))
    throw new ports.ToolArgumentsInvalid("a value is not one of the resource's template");
  const missing = names.filter((name) => !Object.hasOwn(values, name));
  if (missing.length > 0) throw new ports.ToolArgumentsInvalid(`values are missing: ${missing.join(", ")}`);
  // Such a value would leave the folder that the agent's owner chose.
  if (Object.values(values).some((value) => value.split(/[/\\]/).some((part) => part === "." || part === "..")))
    throw new ports.ToolArgumentsInvalid("a value has a part . or ..");
  return parsed ? parsed.expand({ ...values }) : template;
}

/** Undefined for a URI without variables. */
function parse(template: string): UriTemplate | undefined {
  if (!UriTemplate.isTemplate(template)) return undefined;
  try {
    return new UriTemplate(template);
  } catch {
    // It is a URI with braces.
    return undefined;
  }
}
