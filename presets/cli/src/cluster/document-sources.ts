/** Sources of documents of a cluster, and the names that documents of its areas may have. Deeper files of an agent belong to its skills. */
export const DOCUMENT_SOURCES = {
  agents: /^[^/]+\/(?:agent\.json|[^/]+\/.+)$/s,
  workflows: /^(?:[^/]+\/){0,3}[^/]+\.(?:json|ya?ml)$/,
} as const;

/** `agents` or `workflows`. */
export type DocumentSource = keyof typeof DOCUMENT_SOURCES;
