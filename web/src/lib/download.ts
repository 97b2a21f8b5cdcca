/** The browser downloads what stands at the address by itself: nothing of it goes through the memory of the page. */
export function downloadBegin(uri: string, name: string) {
  const link = document.createElement('a')
  link.href = uri
  link.download = name // without it, an error of the server would take the place of this page
  link.click()
}
