import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

// Everything the page loads is a file of its own under a name with a hash: the Content-Security-Policy allows neither
// inline scripts nor data: addresses, and browsers keep such files for ever.
export default defineConfig({
  base: '/',
  esbuild: { jsx: 'automatic', legalComments: 'none' },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: true,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700,
    rollupOptions: {
      input: [fileURLToPath(new URL('index.html', import.meta.url)), fileURLToPath(new URL('plugin-frame.html', import.meta.url))],
      // "use client" is for frameworks that render at a server
      onwarn: (warning, warn) => warning.code === 'MODULE_LEVEL_DIRECTIVE' || warn(warning),
    },
  },
  server: { proxy: { '/api': 'http://127.0.0.1:9186', '/v1': 'http://127.0.0.1:9186' } },
})
