/**
 * The realtime connection as the client uses it. The socket of Socket.IO fits, and its event names are kept: `connect`,
 * `connect_error` with `data.code` of a refusal, and `disconnect` with a reason arrive like events of the service.
 */
export interface Wire {
  readonly connected: boolean;
  /** True if it reconnects by itself, or is connected. */
  readonly active: boolean;
  /** ID of the connection; undefined while not connected. */
  readonly id?: string | undefined;
  connect(): Wire;
  disconnect(): Wire;
  emit(event: string, payload: unknown): unknown;
  on(event: string, listener: (data: any) => void): Wire;
  off(event: string, listener: (data: any) => void): Wire;
}
