import type { PlatformSettings } from "@portico/presets/settings/platform";
import { doubtful, type Finding } from "./finding.ts";

type Limits = { readonly [K in "tokensPerDay" | "moneyPerDay" | "turnsAtOnce" | "turnSeconds"]?: number | undefined };

/** Warns of limits in the settings that can never be reached: a smaller limit always comes first, or what they count is never counted. */
export function checkLimits({ limits, prices, workflow }: PlatformSettings): readonly Finding[] {
  const { instance, user, agent } = limits;
  const above = { "limits.instance": instance };
  const found = [
    ...unreachable(instance ?? {}, "limits.instance", {}, prices !== undefined),
    ...unreachable(user ?? {}, "limits.user", above, prices !== undefined),
    ...unreachable(agent ?? {}, "limits.agent", above, prices !== undefined),
  ];
  const { maxBytes, maxRunBytes } = workflow.files;
  if (maxBytes > maxRunBytes)
    found.push(`workflow.files.maxBytes (${maxBytes}) can never be reached: workflow.files.maxRunBytes is ${maxRunBytes}`);
  return found.map((message) => doubtful("limits", message));
}

/** A sentence for each limit that is above the same limit of one of `scopes`, or counts costs without prices. */
export function unreachable(
  own: Limits,
  name: string,
  scopes: Readonly<Record<string, Limits | undefined>>,
  hasPrices: boolean,
): string[] {
  return Object.entries(own).flatMap(([key, value]) => {
    if (value === undefined) return [];
    const limit = `${name}.${key} (${value}) can never be reached`;
    if (key === "moneyPerDay" && !hasPrices) return [`${limit}: there are no prices; set "prices"`];
    const lower = Object.entries(scopes).find(
      ([, limits]) => (limits?.[key as keyof Limits] ?? Number.POSITIVE_INFINITY) < value,
    );
    return lower ? [`${limit}: ${lower[0]}.${key} is ${lower[1]![key as keyof Limits]}`] : [];
  });
}
