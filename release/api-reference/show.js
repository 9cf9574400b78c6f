// The document is a script next to this one, so that the page also works when opened from a folder, without any request.
SwaggerUIBundle({
  spec: globalThis.openapi,
  dom_id: "#reference",
  deepLinking: true,
  defaultModelsExpandDepth: -1,
  // No requests from this page: the described service runs elsewhere, and the page must not handle its credentials.
  supportedSubmitMethods: [],
});
