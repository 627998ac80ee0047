from django.urls import URLPattern

pages: list[URLPattern] = []
api: list[URLPattern] = []
