import { bearerToken, type Guard } from "@portico/core";
import { proxyErrors } from "./errors.ts";
import type { SafeToken, SafeTokens } from "./safe-tokens.ts";

/** Identifies callers of the proxy, only by their token (specification 2.1, 5). */
export function safeTokenGuard(tokens: SafeTokens): Guard<Promise<SafeToken>> {
  return async (head) => {
    // 5: when both are sent, a nonempty x-api-key wins.
    const presented = head.header("x-api-key") || bearerToken(head);
    const found = presented === undefined ? undefined : await tokens.find(presented);
    if (!found) throw proxyErrors.authentication_error();
    tokens.used(found.tokenId);
    return found;
  };
}
