import { hash } from "node:crypto";

/** One client program of one user, with however many connections. */
export interface Listener {
  readonly userId: string;
  readonly clientInstanceId: string;
}

/** Names a listener in stores and for other processes, without revealing the user. Undefined for turns without a client. */
export function audienceOf({ userId, clientInstanceId }: Listener): string | undefined {
  return clientInstanceId === "" ? undefined : hash("sha256", JSON.stringify([userId, clientInstanceId]), "base64url");
}
