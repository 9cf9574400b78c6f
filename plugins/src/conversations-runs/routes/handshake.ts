import type { ports } from "@portico/core";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Tells a client what it talks to, who it is, and what it can do here. `version` is the instance's. */
export function handshake(
  { runtime: { serverInstanceId }, areas }: ConversationServices,
  version: string,
): ConversationHandlers["handshake"] {
  const capabilities = capabilitiesOf(areas);
  return ({ who }) => ({
    protocolVersion: 1,
    serverInstanceId,
    version,
    identity: { ...(who.userId !== undefined && { userId: who.userId }), role: who.role },
    capabilities,
  });
}

/** What the areas of the app declare. Clients read the words of open points 4 whether or not an area stands behind them. */
function capabilitiesOf(areas: readonly ports.Area[]) {
  const none = { webhookManagement: false, media: false, attachments: false, realtime: false, safeTokens: false };
  return { ...none, ...Object.fromEntries(areas.flatMap(({ capabilities }) => capabilities.map((each) => [each, true]))) };
}
