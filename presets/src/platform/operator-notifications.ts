import { webhookNotifications } from "@portico/adapters/notifications/webhook";
import type { Adapter } from "@portico/core";
import type { PlatformOptions } from "./platform-options.ts";

/** Notifications of the operators, if the settings name an address for them. `hasConsole`: links lead to the console at `agent.publicUrl`. */
export function operatorNotifications(
  { settings }: Pick<PlatformOptions, "settings">,
  { hasConsole }: { readonly hasConsole: boolean },
): readonly Adapter[] {
  const { url, secret, ...wanted } = settings.notifications;
  if (!url || !secret) return [];
  const { publicUrl } = settings.agent;
  return [
    webhookNotifications({
      ...{ url, secret, ...wanted, outbound: settings.outbound },
      ...(hasConsole && publicUrl !== undefined && { consoleUrl: publicUrl }),
    }),
  ];
}
